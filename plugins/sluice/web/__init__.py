"""The pages. They know nothing of Airflow: who may see what is handed in."""
